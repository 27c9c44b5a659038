import neostandard, { plugins } from 'neostandard'

/** The program itself. Linting the tests with types would take several minutes more. */
const TYPED = ['src/**/*.ts', 'scripts/**/*.ts']

export default [
  ...neostandard({
    ts: true,
    ignores: ['dist', 'src/generated', 'test/tools/generated-clients/generated', '.tap', '**/.test-*']
  }),
  {
    files: ['src/**', 'scripts/**', 'test/**'],
    rules: { '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true, ignoreTemplateLiterals: true }] }
  },
  // Rules that need the types of the compiler. neostandard brings the plugin.
  ...plugins['typescript-eslint'].configs.recommendedTypeChecked.map((config) => ({ ...config, files: TYPED })),
  {
    files: TYPED,
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      // Fastify requires async plugins and handlers, also those that await nothing.
      '@typescript-eslint/require-await': 'off'
    }
  },
  // `void` marks a promise that the code deliberately does not await.
  { rules: { 'no-void': ['error', { allowAsStatement: true }] } },
  // The compiler checks these files with the types of a browser (tsconfig.browser.json).
  { files: ['src/*/page/*.js'], rules: { 'no-undef': 'off' } }
]
