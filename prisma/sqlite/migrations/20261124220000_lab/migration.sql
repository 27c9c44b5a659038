-- Written by Prisma from the models, then edited: ids, CHECKs, indexes of a part, and columns that SQLite adds in place.

-- AlterTable
ALTER TABLE "accounts" ADD COLUMN "clock_offset_seconds" BIGINT NOT NULL DEFAULT 0 CHECK ("clock_offset_seconds" >= 0);

-- AlterTable
ALTER TABLE "categories" ADD COLUMN "version_floor" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "inventory_items" ADD COLUMN "version_floor" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "messages" ADD COLUMN "version_floor" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "orders" ADD COLUMN "version_floor" BIGINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "pets" ADD COLUMN "version_floor" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "faults" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "operation" TEXT NOT NULL,
    "effect" TEXT NOT NULL,
    "after" BIGINT NOT NULL CHECK ("after" >= 0),
    "times" BIGINT NOT NULL CHECK ("times" >= 1),
    "key_id" BIGINT,
    "passed" BIGINT NOT NULL DEFAULT 0 CHECK ("passed" BETWEEN 0 AND "after"),
    "hits" BIGINT NOT NULL DEFAULT 0 CHECK ("hits" BETWEEN 0 AND "times"),
    "created_at" DATETIME NOT NULL,
    CONSTRAINT "faults_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "snapshots" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "label" TEXT,
    "created_at" DATETIME NOT NULL,
    "categories" BIGINT NOT NULL,
    "pets" BIGINT NOT NULL,
    "inventory" BIGINT NOT NULL,
    "orders" BIGINT NOT NULL,
    "messages" BIGINT NOT NULL,
    CONSTRAINT "snapshots_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "snapshot_rows" (
    "account_id" BIGINT NOT NULL,
    "snapshot_id" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "row_id" BIGINT NOT NULL,
    "data" TEXT NOT NULL,

    PRIMARY KEY ("account_id", "snapshot_id", "kind", "row_id"),
    CONSTRAINT "snapshot_rows_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "lab_states" (
    "account_id" BIGINT NOT NULL PRIMARY KEY,
    "restores" BIGINT NOT NULL DEFAULT 0,
    "changed_at" DATETIME NOT NULL,
    CONSTRAINT "lab_states_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateIndex
CREATE INDEX "faults_account_id_id_idx" ON "faults"("account_id", "id");

-- CreateIndex
CREATE INDEX "snapshots_account_id_id_idx" ON "snapshots"("account_id", "id");

-- CreateIndex
CREATE INDEX "lab_states_changed_at_idx" ON "lab_states"("changed_at");

-- The faults that can still hit requests.
CREATE INDEX "faults_open_idx" ON "faults"("account_id", "id") WHERE "hits" < "times";

-- The accounts whose clock was moved.
CREATE INDEX "accounts_moved_clock_idx" ON "accounts"("id") WHERE "clock_offset_seconds" > 0;
