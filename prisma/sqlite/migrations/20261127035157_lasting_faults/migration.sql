-- Written by Prisma from the models, then edited: limits, and columns in place of a new table.

-- AlterTable
ALTER TABLE "faults" ADD COLUMN "for_seconds" BIGINT CHECK ("for_seconds" >= 1);
ALTER TABLE "faults" ADD COLUMN "ends_at" DATETIME;
ALTER TABLE "faults" ADD COLUMN "rate" TEXT;
ALTER TABLE "faults" ADD COLUMN "seed" BIGINT CHECK ("seed" >= 0);
ALTER TABLE "faults" ADD COLUMN "spared" BIGINT NOT NULL DEFAULT 0 CHECK ("spared" >= 0);
