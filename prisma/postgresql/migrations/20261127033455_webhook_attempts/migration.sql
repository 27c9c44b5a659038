-- Written by Prisma from the models, then edited: indexes of a part.

-- AlterTable
ALTER TABLE "webhooks" ADD COLUMN     "attempt_bytes" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN     "attempts_made" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "webhook_attempts" (
    "account_id" BIGINT NOT NULL,
    "webhook_id" BIGINT NOT NULL,
    "id" BIGINT NOT NULL,
    "event_id" BIGINT NOT NULL,
    "at" TIMESTAMP(3) NOT NULL,
    "status" INTEGER,
    "error" TEXT,
    "duration_ms" BIGINT NOT NULL,
    "next_try_at" TIMESTAMP(3),
    "request" TEXT,
    "body" TEXT,
    "answer" TEXT,
    "total_bytes" BIGINT NOT NULL,

    CONSTRAINT "webhook_attempts_pkey" PRIMARY KEY ("account_id","webhook_id","id")
);

-- AddForeignKey
ALTER TABLE "webhook_attempts" ADD CONSTRAINT "webhook_attempts_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- What a resend of events looks up: whether an event waits for the webhook, or failed.
CREATE INDEX "deliveries_unaccepted_idx" ON "deliveries"("webhook_id", "state", "event_id") WHERE "state" <> 'delivered';

-- What may be deleted. Failed deliveries stay longer than those that were delivered.
CREATE INDEX "deliveries_ended_idx" ON "deliveries"("state", "settled_at") WHERE "settled_at" IS NOT NULL;
DROP INDEX "deliveries_settled_idx";
