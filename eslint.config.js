import neostandard from 'neostandard'

export default neostandard({
  ts: true,
  ignores: ['dist', '.dist-*', 'src/generated', '.tap']
})
