-- Written by Prisma from the models, then edited: limits of the values.

-- CreateTable
CREATE TABLE "account_limits" (
    "account_id" BIGINT NOT NULL PRIMARY KEY,
    "requests" BIGINT NOT NULL CHECK ("requests" >= 1),
    "window_seconds" BIGINT NOT NULL CHECK ("window_seconds" >= 1),
    "per" TEXT NOT NULL CHECK ("per" IN ('account', 'key')),
    "fields" TEXT NOT NULL CHECK ("fields" IN ('ietf', 'x-ratelimit', 'none')),
    "retry_after" TEXT NOT NULL CHECK ("retry_after" IN ('seconds', 'date', 'none')),
    "refused" BIGINT NOT NULL DEFAULT 0 CHECK ("refused" >= 0),
    "early" BIGINT NOT NULL DEFAULT 0 CHECK ("early" >= 0),
    "windows" TEXT NOT NULL DEFAULT '[]',
    CONSTRAINT "account_limits_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);
