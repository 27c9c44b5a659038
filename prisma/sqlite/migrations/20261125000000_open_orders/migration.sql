-- Written by hand, because the model does not show an index of a part. The index of the orders by pet and completion
-- finds the open orders of a pet as well.

-- DropIndex
DROP INDEX "orders_open_idx";
