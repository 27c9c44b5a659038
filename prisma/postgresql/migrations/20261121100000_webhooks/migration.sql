-- Written by Prisma from the models. What they cannot say stands at the end.

-- CreateEnum
CREATE TYPE "delivery_state" AS ENUM ('waiting', 'delivered', 'failed');

-- AlterTable
ALTER TABLE "messages" ADD COLUMN "waiting" INTEGER NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "webhooks" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "gone" BOOLEAN NOT NULL DEFAULT false,
    "secret" TEXT NOT NULL,
    "previous_secret" TEXT,
    "previous_until" TIMESTAMP(3),
    "attempts" TEXT NOT NULL DEFAULT '[]',
    "created_at" TIMESTAMP(3) NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "webhooks_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "deliveries" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "webhook_id" BIGINT NOT NULL,
    "event_id" BIGINT NOT NULL,
    "message_position" BIGINT,
    "state" "delivery_state" NOT NULL DEFAULT 'waiting',
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_try_at" TIMESTAMP(3) NOT NULL,
    "give_up_at" TIMESTAMP(3) NOT NULL,
    "leased_by" TEXT,
    "settled_at" TIMESTAMP(3),

    CONSTRAINT "deliveries_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "webhooks_account_id_id_idx" ON "webhooks"("account_id", "id");

-- CreateIndex
CREATE INDEX "deliveries_account_id_idx" ON "deliveries"("account_id");

-- AddForeignKey
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "deliveries" ADD CONSTRAINT "deliveries_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- What waits, by webhook and in the order in which it is started.
CREATE INDEX "deliveries_waiting_idx" ON "deliveries"("webhook_id", "next_try_at", "event_id") WHERE "state" = 'waiting';

-- What a worker has taken.
CREATE INDEX "deliveries_leased_idx" ON "deliveries"("webhook_id") WHERE "leased_by" IS NOT NULL;

-- What may be removed.
CREATE INDEX "deliveries_settled_idx" ON "deliveries"("settled_at") WHERE "settled_at" IS NOT NULL;

-- Messages that no webhook is asked about.
CREATE INDEX "messages_plain_idx" ON "messages"("position") WHERE "status" = 'queued' AND "waiting" = 0;

-- Ids are never above 2^53-1, so that every JSON client reads them exactly.
ALTER SEQUENCE "webhooks_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "deliveries_id_seq" MAXVALUE 9007199254740991;

ALTER TABLE "messages" ADD CONSTRAINT "messages_waiting_check" CHECK ("waiting" >= 0);
