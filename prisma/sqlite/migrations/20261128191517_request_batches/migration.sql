-- Written by Prisma from the models, then edited: the requests that journals have, and columns that SQLite changes in place.

-- CreateTable
CREATE TABLE "recorded_batches" (
    "account_id" BIGINT NOT NULL,
    "first_id" BIGINT NOT NULL,
    "bytes" BIGINT NOT NULL,
    "hashes" TEXT NOT NULL,
    "facts" TEXT NOT NULL,
    "data" TEXT NOT NULL,

    PRIMARY KEY ("account_id", "first_id"),
    CONSTRAINT "recorded_batches_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- Each request becomes a batch, with ids that begin with 1 in each journal.
WITH "n" AS (
    SELECT "id", row_number() OVER (PARTITION BY "account_id" ORDER BY "id") AS "number" FROM "recorded_requests"
)
INSERT INTO "recorded_batches" ("account_id", "first_id", "bytes", "hashes", "facts", "data")
SELECT r."account_id", n."number", 0, substr(r."attempt_key", instr(r."attempt_key", ' ') + 1, 16),
    '[{"id":' || n."number" || ',"endedMs":' || r."ended_ms" || coalesce(',"attemptOf":' || m."number", '')
        || coalesce(',"pauseMs":' || r."pause_ms", '') || coalesce(',"askedMs":' || r."asked_ms", '')
        || ',' || substr(r."facts", 2) || ']',
    r."data"
FROM "recorded_requests" r
JOIN "n" ON n."id" = r."id"
LEFT JOIN "n" AS m ON m."id" = r."attempt_of";

UPDATE "recorded_batches"
SET "bytes" = 64 + octet_length("hashes") + octet_length("facts") + octet_length("data");

-- DropTable
DROP TABLE "recorded_requests";

-- AlterTable
ALTER TABLE "journals" DROP COLUMN "requests";
ALTER TABLE "journals" ADD COLUMN "first_id" BIGINT NOT NULL DEFAULT 1;
ALTER TABLE "journals" ADD COLUMN "last_id" BIGINT NOT NULL DEFAULT 0;

UPDATE "accounts" SET "stored_bytes" = "stored_bytes"
    + coalesce((SELECT sum(b."bytes") FROM "recorded_batches" b WHERE b."account_id" = "accounts"."id"), 0)
    - (SELECT j."bytes" FROM "journals" j WHERE j."account_id" = "accounts"."id")
WHERE "id" IN (SELECT "account_id" FROM "journals");

UPDATE "journals" SET
    "last_id" = coalesce((SELECT max(b."first_id") FROM "recorded_batches" b WHERE b."account_id" = "journals"."account_id"), 0),
    "bytes" = coalesce((SELECT sum(b."bytes") FROM "recorded_batches" b WHERE b."account_id" = "journals"."account_id"), 0);
