import neostandard, { plugins } from 'neostandard'

const TYPESCRIPT = ['**/*.ts']

/** `t.test()` returns a promise, and tap itself waits for it. */
const SUBTEST = { from: 'package', package: '@tapjs/core', name: 'PromiseWithSubtest' }

export default [
  ...neostandard({
    ts: true,
    ignores: ['dist', '.dist-*', 'src/generated', '.tap']
  }),
  { files: ['src/**', 'scripts/**'], rules: { '@stylistic/max-len': ['error', { code: 120, ignoreUrls: true }] } },
  // Rules that need the types of the compiler. neostandard brings the plugin, so package.json does not name it.
  ...plugins['typescript-eslint'].configs.recommendedTypeChecked.map((config) => ({ ...config, files: TYPESCRIPT })),
  {
    files: TYPESCRIPT,
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { allowForKnownSafePromises: [SUBTEST] }],
      // Fastify requires async plugins and handlers, also those that await nothing.
      '@typescript-eslint/require-await': 'off'
    }
  },
  {
    files: ['test/**/*.ts'],
    rules: {
      // JSON bodies of responses have the type any, so that tests can compare any part of them.
      '@typescript-eslint/no-explicit-any': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/restrict-template-expressions': 'off'
    }
  },
  // The compiler checks these files with the types of a browser (tsconfig.browser.json).
  { files: ['src/*/page/*.js'], rules: { 'no-undef': 'off' } }
]
