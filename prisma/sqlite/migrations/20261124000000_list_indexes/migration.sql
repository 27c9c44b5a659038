-- Written by Prisma from the models, then edited: an index of a part, and a trigger. Lists that filter by two columns
-- walk an index of both.

-- CreateIndex
CREATE INDEX "pets_account_id_category_id_status_id_idx" ON "pets"("account_id", "category_id", "status", "id");

-- CreateIndex
CREATE INDEX "orders_account_id_pet_id_complete_id_idx" ON "orders"("account_id", "pet_id", "complete", "id");

-- The inventory of one status walks an index of the pets that are counted.

-- AlterTable
ALTER TABLE "pets" ADD COLUMN "counted" BOOLEAN NOT NULL DEFAULT false;

UPDATE "pets" SET "counted" = true WHERE "id" IN (SELECT "pet_id" FROM "inventory_items");

CREATE INDEX "pets_counted_idx" ON "pets"("account_id", "status", "id") WHERE "counted";

CREATE TRIGGER "inventory_items_mark_pet" AFTER INSERT ON "inventory_items"
BEGIN
    UPDATE "pets" SET "counted" = true WHERE "id" = NEW."pet_id";
END;
