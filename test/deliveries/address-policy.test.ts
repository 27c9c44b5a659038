// Only on SQLite: calls a pure function.

import t from 'tap'
import { hasPrivateHost, isPublicAddress } from '../../src/deliveries/address-policy.ts'

t.test('only addresses of the public internet are public', async (t) => {
  for (const address of [
    '1.1.1.1', '8.8.8.8', '172.15.255.255', '172.32.0.1', '192.167.0.1', '2606:4700::1111', '::ffff:8.8.8.8',
    '2600:2d00:2:fff::1', '2600:2d00:2:1001::1', '2600:2d00:2:2001::',
    '168.63.129.15', '168.63.129.17', '161.27.0.1', '166.12.0.1', '199.36.153.12'
  ]) t.equal(isPublicAddress(address), true, address)
  for (const address of [
    '127.0.0.1', '127.255.255.254', '0.0.0.0', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.0.1',
    '169.254.169.254', '100.64.0.1', '100.127.255.255', '192.0.0.8', '192.0.2.1', '198.18.0.1', '198.51.100.1',
    '203.0.113.1', '224.0.0.1', '255.255.255.255', '::', '::1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe', '::10.0.0.1',
    '64:ff9b::a00:1', '64:ff9b:1::1', '2002:a00:1::', '2001::1', '2001:db8::1', 'fe80::1', 'febf::1', 'fc00::1',
    'fdff::1', 'fec0::1', 'ff02::1', '100::1', '4000::1', '1fff::1', 'nonsense', '',
    // Services of clouds.
    '168.63.129.16', '::ffff:168.63.129.16', '100.100.100.200', '192.0.0.192', '161.26.0.10', '166.11.255.255',
    '199.36.153.4', '199.36.153.11', '2600:2d00:2:1000::', '2600:2d00:0002:2000:ffff::1',
    'fd00:ec2::254', 'fd20:ce::254', 'fe80::a9fe:a9fe'
  ]) t.equal(isPublicAddress(address), false, address)
})

t.test('a URL with a private host is found in every notation that URLs allow', async (t) => {
  for (const url of [
    'http://127.0.0.1/', 'http://2130706433/', 'http://0x7f.1/', 'http://0177.0.0.1/', 'http://127.1:80', 'http://0/',
    'http://127.0.0.1./', 'http://①②⑦.⓪.⓪.①/', 'http://%31%32%37.0.0.1/', 'http://[::1]:8080/', 'HTTPS://[::]/',
    'http://[::ffff:127.0.0.1]/', 'http://[::FFFF:A00:1]/', 'http://user@10.0.0.1/', 'http://localhost/',
    'HTTPS://LOCALHOST.:8443/x', 'http://a.b.localhost/', 'http://%6c%6Fcalhost/', 'http://localhost%2e/'
  ]) t.equal(hasPrivateHost(url), true, url)
  for (const url of [
    'http://8.8.8.8/', 'http://[2606:4700::1111]/', 'https://example.com./', 'http://localhost.example/',
    'http://notlocalhost/', 'http://example.com/?localhost', 'http://localhost@example.com/'
  ]) t.equal(hasPrivateHost(url), false, url)
})
