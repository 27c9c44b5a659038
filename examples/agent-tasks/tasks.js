import { cancelTheRightOne } from './tasks/cancel-the-right-one.js'
import { noticeADuplicate } from './tasks/notice-a-duplicate.js'
import { orderOnce } from './tasks/order-once.js'
import { refuseToOversell } from './tasks/refuse-to-oversell.js'
import { stopAtTheSunset } from './tasks/stop-at-the-sunset.js'
import { surviveALimit } from './tasks/survive-a-limit.js'

export const tasks = [
  orderOnce, cancelTheRightOne, refuseToOversell, surviveALimit, noticeADuplicate, stopAtTheSunset
]
