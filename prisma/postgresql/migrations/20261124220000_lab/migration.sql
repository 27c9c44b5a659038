-- Written by Prisma from the models, then edited: CHECKs, ids and indexes of a part.

-- AlterTable
ALTER TABLE "accounts" ADD COLUMN "clock_offset_seconds" BIGINT NOT NULL DEFAULT 0;

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
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "operation" TEXT NOT NULL,
    "effect" TEXT NOT NULL,
    "after" BIGINT NOT NULL,
    "times" BIGINT NOT NULL,
    "key_id" BIGINT,
    "passed" BIGINT NOT NULL DEFAULT 0,
    "hits" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "faults_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "snapshots" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "label" TEXT,
    "created_at" TIMESTAMP(3) NOT NULL,
    "categories" BIGINT NOT NULL,
    "pets" BIGINT NOT NULL,
    "inventory" BIGINT NOT NULL,
    "orders" BIGINT NOT NULL,
    "messages" BIGINT NOT NULL,

    CONSTRAINT "snapshots_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "snapshot_rows" (
    "account_id" BIGINT NOT NULL,
    "snapshot_id" BIGINT NOT NULL,
    "kind" TEXT NOT NULL,
    "row_id" BIGINT NOT NULL,
    "data" TEXT NOT NULL,

    CONSTRAINT "snapshot_rows_pkey" PRIMARY KEY ("account_id","snapshot_id","kind","row_id")
);

-- CreateTable
CREATE TABLE "lab_states" (
    "account_id" BIGINT NOT NULL,
    "restores" BIGINT NOT NULL DEFAULT 0,
    "changed_at" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "lab_states_pkey" PRIMARY KEY ("account_id")
);

-- CreateIndex
CREATE INDEX "faults_account_id_id_idx" ON "faults"("account_id", "id");

-- CreateIndex
CREATE INDEX "snapshots_account_id_id_idx" ON "snapshots"("account_id", "id");

-- CreateIndex
CREATE INDEX "lab_states_changed_at_idx" ON "lab_states"("changed_at");

-- AddForeignKey
ALTER TABLE "faults" ADD CONSTRAINT "faults_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "snapshots" ADD CONSTRAINT "snapshots_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "snapshot_rows" ADD CONSTRAINT "snapshot_rows_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "lab_states" ADD CONSTRAINT "lab_states_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Ids are never above 2^53-1, so that every JSON client reads them exactly.
ALTER SEQUENCE "faults_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "snapshots_id_seq" MAXVALUE 9007199254740991;

-- The faults that can still hit requests.
CREATE INDEX "faults_open_idx" ON "faults"("account_id", "id") WHERE "hits" < "times";

-- The accounts whose clock was moved.
CREATE INDEX "accounts_moved_clock_idx" ON "accounts"("id") WHERE "clock_offset_seconds" > 0;

ALTER TABLE "accounts" ADD CONSTRAINT "accounts_clock_offset_seconds_check" CHECK ("clock_offset_seconds" >= 0);
ALTER TABLE "faults" ADD CONSTRAINT "faults_after_check" CHECK ("after" >= 0);
ALTER TABLE "faults" ADD CONSTRAINT "faults_times_check" CHECK ("times" >= 1);
ALTER TABLE "faults" ADD CONSTRAINT "faults_passed_check" CHECK ("passed" BETWEEN 0 AND "after");
ALTER TABLE "faults" ADD CONSTRAINT "faults_hits_check" CHECK ("hits" BETWEEN 0 AND "times");
