-- AlterTable
ALTER TABLE "webhooks" ADD COLUMN     "failing_since" TIMESTAMP(3),
ADD COLUMN     "failures" INTEGER NOT NULL DEFAULT 0;
