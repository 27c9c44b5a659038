-- AlterTable
ALTER TABLE "webhooks" ADD COLUMN "failing_since" DATETIME;
ALTER TABLE "webhooks" ADD COLUMN "failures" INTEGER NOT NULL DEFAULT 0;
