"""A client in Python with the standard library alone, and its adapter.

npx --no petstore exam --client "python3 examples/exam/python/adapter.py"
"""
import base64
import hashlib
import hmac
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer

ATTEMPTS = 4


class Petstore:
    def __init__(self, url, api_key, timeout):
        self.url, self.api_key, self.timeout = url, api_key, timeout

    def open(self, method, path, body=None, headers=()):
        fields = {'Authorization': f'Bearer {self.api_key}', 'Content-Type': 'application/json', **dict(headers)}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, fields, method=method)
        return urllib.request.urlopen(request, timeout=self.timeout)

    def call(self, method, path, body=None, headers=()):
        """Sends a request until it succeeds. Returns the content and the header fields."""
        headers = dict(headers)
        if method != 'GET':
            headers['Idempotency-Key'] = str(uuid.uuid4())
        for attempt in range(ATTEMPTS):
            pause = 0.5 * 2 ** attempt
            try:
                with self.open(method, path, body, headers) as response:
                    return json.load(response), response.headers
            except urllib.error.HTTPError as error:
                if attempt == ATTEMPTS - 1 or error.code not in (429, 500, 502, 503, 504):
                    raise
                pause = int(error.headers.get('Retry-After', pause))
            except OSError:
                if attempt == ATTEMPTS - 1:
                    raise
            time.sleep(pause)

    def get_pet(self, pet_id):
        return self.call('GET', f'/pets/{pet_id}')[0]

    def list_pets(self):
        path, pets = '/pets?limit=100', []
        while path:
            page, headers = self.call('GET', path)
            pets += page
            link = re.search(r'<([^>]+)>; rel="next"', headers.get('Link', ''))
            path = link and link[1]
        return pets

    def place_order(self, pet_id, quantity):
        return self.call('POST', '/store/orders', {'petId': pet_id, 'quantity': quantity})[0]

    def change_name(self, pet_id, change):
        """Applies a function to the name of a pet."""
        while True:
            pet, headers = self.call('GET', f'/pets/{pet_id}')
            try:
                patch = {'name': change(pet['name'])}
                return self.call('PATCH', f'/pets/{pet_id}', patch, {'If-Match': headers['ETag']})[0]
            except urllib.error.HTTPError as error:
                if error.code != 412:
                    raise

    def events(self, after):
        """Follows the events, and resumes after a broken connection."""
        while True:
            try:
                fields = {'Accept': 'text/event-stream', 'Last-Event-ID': str(after)}
                with self.open('GET', '/events', headers=fields) as stream:
                    for line in stream:
                        if line.startswith(b'data: '):
                            event = json.loads(line[6:])
                            after = event['id']
                            yield event
            except urllib.error.HTTPError:
                raise
            except OSError:
                time.sleep(1)


class Receiver(BaseHTTPRequestHandler):
    secret, received = '', []

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        is_valid = self.is_signed(body) and abs(time.time() - int(self.headers['webhook-timestamp'])) < 300
        if is_valid:
            self.received.append(json.loads(body)['id'])
        self.send_response(204 if is_valid else 401)
        self.end_headers()

    def is_signed(self, body):
        signed = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(Receiver.secret.removeprefix('whsec_'))
        expected = 'v1,' + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return any(hmac.compare_digest(expected, one) for one in self.headers['webhook-signature'].split())

    def log_message(self, *_):
        pass


def follow_events(store, after, count):
    ids = []
    for event in store.events(after):
        ids.append(event['id'])
        if len(ids) == count:
            return ids


def receive_webhooks(_store, secret):
    Receiver.secret = secret
    server = HTTPServer(('127.0.0.1', 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return {'url': f'http://127.0.0.1:{server.server_port}/'}


def change_secret(_store, secret):
    Receiver.secret = secret


TASKS = {
    'getPet': lambda store, petId: store.get_pet(petId),
    'refreshPet': lambda store, petId: store.get_pet(petId),
    'listPets': lambda store: [pet['id'] for pet in store.list_pets()],
    'placeOrder': lambda store, petId, quantity: store.place_order(petId, quantity),
    'appendToName': lambda store, petId, text: store.change_name(petId, lambda name: name + text),
    'followEvents': follow_events,
    'receiveWebhooks': receive_webhooks,
    'changeSecret': change_secret,
    'receivedEvents': lambda _store: Receiver.received,
}

for line in sys.stdin:
    task = json.loads(line)
    store = Petstore(task['url'], task['apiKey'], task['timeoutMs'] / 1000)
    answer = {'id': task['id'], 'ok': True}
    if task['do'] not in TASKS:
        answer |= {'ok': False, 'error': {'code': 'unknown_task', 'text': 'The client has nothing for this.'}}
    else:
        try:
            answer['result'] = TASKS[task['do']](store, **task['args'])
        except Exception as error:
            answer |= {'ok': False, 'error': {'status': getattr(error, 'code', None), 'text': repr(error)}}
    print(json.dumps(answer), flush=True)
