-- Written by Prisma from the models, then edited: columns that SQLite adds in place, and the links of recorded requests,
-- which were in their texts.

-- AlterTable
ALTER TABLE "recorded_requests" ADD COLUMN "started_ms" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "recorded_requests" ADD COLUMN "attempt_of" BIGINT;
ALTER TABLE "recorded_requests" ADD COLUMN "pause_ms" BIGINT;
ALTER TABLE "recorded_requests" ADD COLUMN "asked_ms" BIGINT;

UPDATE "recorded_requests" SET
    "attempt_key" = "account_id" || ' ' || "attempt_key",
    "started_ms" = json_extract("facts", '$.startedMs'),
    "attempt_of" = json_extract("facts", '$.attemptOf'),
    "pause_ms" = json_extract("facts", '$.pauseMs'),
    "asked_ms" = json_extract("facts", '$.askedMs'),
    "facts" = json_remove("facts", '$.id', '$.attemptOf', '$.pauseMs', '$.askedMs'),
    "data" = json_remove("data", '$.id', '$.attemptOf', '$.pauseMs');

-- DropIndex
DROP INDEX "recorded_requests_account_id_attempt_key_id_idx";

-- CreateIndex
CREATE INDEX "recorded_requests_attempt_key_started_ms_idx" ON "recorded_requests"("attempt_key", "started_ms");
