import { init, use } from 'echarts/core'
import { BarChart } from 'echarts/charts'
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components'
import { SVGRenderer } from 'echarts/renderers'
import type { DatabaseName } from '../../src/database/dialect.ts'
import type { Plan } from '../bench/measure.ts'
import type { ServerName } from '../bench/processes.ts'
import type { Summary } from '../bench/report.ts'
import { workloads } from '../bench/workloads.ts'

const COLOURS: Array<[ServerName, string]> = [['petstore', '#1f6feb'], ['baseline', '#8c959f'], ['prisma', '#d4a72c']]
const NAMES: Record<DatabaseName, string> = { sqlite: 'SQLite', postgresql: 'PostgreSQL' }
const WIDTH = 860
/** The height of one workload, and the space around the part of each database. */
const ROW = 44
const EDGE = 70

use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer])

/** Draws the requests per second of each server as an SVG for the README. */
export function chart (summary: Summary[], { connections, pets }: Plan): string {
  const databases = [...new Set(summary.map(({ database }) => database))]
  const parts = databases.map((database) => summary.filter((cell) => cell.database === database))
  const tops = parts.map((_, i) => EDGE + parts.slice(0, i).reduce((sum, part) => sum + part.length * ROW + EDGE, 0))
  const height = tops.at(-1)! + parts.at(-1)!.length * ROW + EDGE / 2

  const drawing = init(null, null, { renderer: 'svg', ssr: true, width: WIDTH, height })
  drawing.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    color: COLOURS.map(([, colour]) => colour),
    legend: { top: 8, right: 16 },
    title: [
      {
        text: `Requests per second, ${connections} connections, ${pets.toLocaleString('en')} pets`,
        left: 16,
        top: 8,
        textStyle: { fontSize: 14 }
      },
      ...databases.map((database, i) => ({
        text: NAMES[database],
        left: 16,
        top: tops[i]! - 26,
        textStyle: { fontSize: 13 }
      }))
    ],
    grid: parts.map((part, i) => ({ left: 150, right: 70, top: tops[i]!, height: part.length * ROW })),
    xAxis: parts.map((_, i) => ({ type: 'value', gridIndex: i, splitNumber: 4 })),
    yAxis: parts.map((part, i) => ({
      type: 'category',
      gridIndex: i,
      inverse: true,
      data: part.map(({ workload }) => workloads[workload]!.title)
    })),
    series: parts.flatMap((part, i) =>
      COLOURS.map(([server]) => ({
        type: 'bar' as const,
        name: server,
        xAxisIndex: i,
        yAxisIndex: i,
        data: part.map(({ many }) => Math.round(many[server].perSecond.median)),
        label: { show: true, position: 'right' as const, fontSize: 9 }
      }))
    )
  })
  const svg = drawing.renderToSVGString()
  drawing.dispose()
  return svg
}
