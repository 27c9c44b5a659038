// The configuration of Prisma Studio: `petstore studio` passes the address of the database.
export default { datasource: { url: process.env.STUDIO_URL } }
