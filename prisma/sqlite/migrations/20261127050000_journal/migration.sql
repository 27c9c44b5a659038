-- Written by Prisma from the models, then edited: ids, CHECKs, and the index of a part.

-- CreateTable
CREATE TABLE "journals" (
    "account_id" BIGINT NOT NULL PRIMARY KEY,
    "version" BIGINT NOT NULL DEFAULT 1,
    "keep" BIGINT CHECK ("keep" BETWEEN 1 AND 10000),
    "requests" BIGINT NOT NULL DEFAULT 0 CHECK ("requests" >= 0),
    "bytes" BIGINT NOT NULL DEFAULT 0 CHECK ("bytes" >= 0),
    "dropped" BIGINT NOT NULL DEFAULT 0 CHECK ("dropped" >= 0),
    CONSTRAINT "journals_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "recorded_requests" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "operation" TEXT NOT NULL,
    "status" BIGINT,
    "key_id" BIGINT NOT NULL,
    "run" TEXT,
    "attempt_key" TEXT NOT NULL,
    "ended_ms" BIGINT NOT NULL,
    "bytes" BIGINT NOT NULL,
    "facts" TEXT NOT NULL,
    "data" TEXT NOT NULL,
    CONSTRAINT "recorded_requests_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateIndex
CREATE INDEX "recorded_requests_account_id_id_idx" ON "recorded_requests"("account_id", "id");

-- CreateIndex
CREATE INDEX "recorded_requests_account_id_attempt_key_id_idx" ON "recorded_requests"("account_id", "attempt_key", "id");

-- The journals that are on.
CREATE INDEX "journals_on_idx" ON "journals"("account_id") WHERE "keep" IS NOT NULL;
