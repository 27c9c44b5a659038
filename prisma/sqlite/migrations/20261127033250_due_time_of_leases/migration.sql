-- AlterTable
ALTER TABLE "deliveries" ADD COLUMN "due_at" DATETIME;
