-- Written by Prisma from the models, then edited as the first one: ids, CHECKs, and indexes of a part.

-- AlterTable
ALTER TABLE "messages" ADD COLUMN "waiting" INTEGER NOT NULL DEFAULT 0 CHECK ("waiting" >= 0);

-- CreateTable
CREATE TABLE "webhooks" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "url" TEXT NOT NULL,
    "events" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "gone" BOOLEAN NOT NULL DEFAULT false,
    "secret" TEXT NOT NULL,
    "previous_secret" TEXT,
    "previous_until" DATETIME,
    "attempts" TEXT NOT NULL DEFAULT '[]',
    "created_at" DATETIME NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "webhooks_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "deliveries" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "webhook_id" BIGINT NOT NULL,
    "event_id" BIGINT NOT NULL,
    "message_position" BIGINT,
    "state" TEXT NOT NULL DEFAULT 'waiting' CHECK ("state" IN ('waiting', 'delivered', 'failed')),
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_try_at" DATETIME NOT NULL,
    "give_up_at" DATETIME NOT NULL,
    "leased_by" TEXT,
    "settled_at" DATETIME,
    CONSTRAINT "deliveries_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateIndex
CREATE INDEX "webhooks_account_id_id_idx" ON "webhooks"("account_id", "id");

-- CreateIndex
CREATE INDEX "deliveries_account_id_idx" ON "deliveries"("account_id");

-- What waits, by webhook and in the order in which it is started.
CREATE INDEX "deliveries_waiting_idx" ON "deliveries"("webhook_id", "next_try_at", "event_id") WHERE "state" = 'waiting';

-- What a worker has taken.
CREATE INDEX "deliveries_leased_idx" ON "deliveries"("webhook_id") WHERE "leased_by" IS NOT NULL;

-- What may be removed.
CREATE INDEX "deliveries_settled_idx" ON "deliveries"("settled_at") WHERE "settled_at" IS NOT NULL;

-- Messages that no webhook is asked about.
CREATE INDEX "messages_plain_idx" ON "messages"("position") WHERE "status" = 'queued' AND "waiting" = 0;
