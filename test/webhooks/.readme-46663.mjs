import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { verifyWebhook } from 'petstore/client'

const secret = process.env.WEBHOOK_SECRET
createServer(async (request, response) => {
  try {
    console.log(verifyWebhook({ secret, body: await text(request), headers: request.headers })) // the event
    response.writeHead(204).end() // other answers are retried for about a day, with the same webhook-id
  } catch { response.writeHead(401).end() } // the signature is wrong
}).listen(46663)
