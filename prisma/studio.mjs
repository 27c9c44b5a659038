// The configuration of `petstore studio`: where the database is, and nothing else.
export default { datasource: { url: process.env.STUDIO_URL } }
