-- Written by Prisma from the models, then edited: an index of a part. An account that has expired is deleted.

-- AlterTable
ALTER TABLE "accounts" ADD COLUMN     "expires_at" TIMESTAMP(3);

-- The accounts that will expire, or have expired and are still to be deleted.
CREATE INDEX "accounts_expiring_idx" ON "accounts"("expires_at") WHERE "expires_at" IS NOT NULL;
