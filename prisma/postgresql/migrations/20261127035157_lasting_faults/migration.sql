-- Written by Prisma from the models, then edited: limits.

-- AlterTable
ALTER TABLE "faults" ADD COLUMN     "ends_at" TIMESTAMP(3),
ADD COLUMN     "for_seconds" BIGINT,
ADD COLUMN     "rate" TEXT,
ADD COLUMN     "seed" BIGINT,
ADD COLUMN     "spared" BIGINT NOT NULL DEFAULT 0;

ALTER TABLE "faults" ADD CONSTRAINT "faults_for_seconds_check" CHECK ("for_seconds" >= 1);
ALTER TABLE "faults" ADD CONSTRAINT "faults_seed_check" CHECK ("seed" >= 0);
ALTER TABLE "faults" ADD CONSTRAINT "faults_spared_check" CHECK ("spared" >= 0);
