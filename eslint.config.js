import neostandard from 'neostandard'

export default [
  ...neostandard({
    ts: true,
    ignores: ['dist', '.dist-*', 'src/generated', '.tap']
  }),
  // Checked by the compiler, which knows the names that a browser has.
  { files: ['src/*/page/*.js'], rules: { 'no-undef': 'off' } }
]
