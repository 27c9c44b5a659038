// Imported before test/support/database.ts, which reads it.
process.env['DATABASE'] = 'postgresql'
