-- Written by Prisma from the models, then edited: the links of recorded requests, which were in their texts.

-- AlterTable
ALTER TABLE "recorded_requests"
    ADD COLUMN "started_ms" BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN "attempt_of" BIGINT,
    ADD COLUMN "pause_ms" BIGINT,
    ADD COLUMN "asked_ms" BIGINT;

-- A body can have the escape \u0000, which jsonb cannot: the texts stay texts. Their first member is the id, and their
-- last ones are the link.
UPDATE "recorded_requests" SET
    "attempt_key" = "account_id" || ' ' || "attempt_key",
    "started_ms" = ("facts"::json ->> 'startedMs')::BIGINT,
    "attempt_of" = ("facts"::json ->> 'attemptOf')::BIGINT,
    "pause_ms" = ("facts"::json ->> 'pauseMs')::BIGINT,
    "asked_ms" = ("facts"::json ->> 'askedMs')::BIGINT,
    "facts" = regexp_replace(regexp_replace("facts", '^\{"id":\d+,', '{'), ',"attemptOf":\d+,"pauseMs":\d+(,"askedMs":\d+)?\}$', '}'),
    "data" = regexp_replace(regexp_replace("data", '^\{"id":\d+,', '{'), ',"attemptOf":\d+,"pauseMs":\d+\}$', '}');

-- DropIndex
DROP INDEX "recorded_requests_account_id_attempt_key_id_idx";

-- CreateIndex
CREATE INDEX "recorded_requests_attempt_key_started_ms_idx" ON "recorded_requests"("attempt_key", "started_ms");
