-- Written by Prisma from the models, then edited: the order. One index serves the lists of orders by pet, with and without
-- their completion: these indexes cost every order, because their places are random.

-- CreateIndex
CREATE INDEX "orders_pet_id_account_id_complete_id_idx" ON "orders"("pet_id", "account_id", "complete", "id");

-- DropIndex
DROP INDEX "orders_account_id_pet_id_complete_id_idx";

-- DropIndex
DROP INDEX "orders_pet_id_account_id_id_idx";
