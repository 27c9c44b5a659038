# The first stage compiles the service. The second stage runs it, without compiler and development packages.

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY . .
# Without the workspace and the tools in package.json, `npm prune` leaves what runs the service.
RUN node scripts/prepare.mjs && \
    npm pkg delete workspaces devDependencies overrides && npm prune --ignore-scripts --no-audit && \
    install -d -o node -g node /data

FROM node:24.21.0-bookworm-slim
WORKDIR /app
COPY --from=build /app/package.json /app/LICENSE ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/prisma prisma
COPY --from=build /app/dist dist
# The service writes only to this folder, and only with SQLite. All other folders can be read-only.
COPY --from=build --chown=node:node /data /data
VOLUME /data
USER node
ENV HOST=0.0.0.0 PORT=3000 DATABASE_URL=file:/data/petstore.db
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/readyz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["dist/cli.js", "start"]
