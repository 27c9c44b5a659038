-- Written by Prisma from the models, then edited: an index of a part. A deleted account is marked, and its rows are
-- erased in small steps afterwards.

-- AlterTable
ALTER TABLE "accounts" ADD COLUMN     "deleted_at" TIMESTAMP(3);

CREATE INDEX "accounts_deleted_idx" ON "accounts"("deleted_at") WHERE "deleted_at" IS NOT NULL;

-- DropIndex
DROP INDEX "deliveries_account_id_idx";

-- CreateIndex
CREATE INDEX "deliveries_account_id_id_idx" ON "deliveries"("account_id", "id");
