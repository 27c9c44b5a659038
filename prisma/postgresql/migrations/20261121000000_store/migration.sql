-- Written by Prisma from the models. What they cannot say stands at the end.

-- CreateEnum
CREATE TYPE "pet_status" AS ENUM ('available', 'pending', 'sold');

-- CreateEnum
CREATE TYPE "message_status" AS ENUM ('queued', 'processing', 'delivered', 'failed');

-- CreateTable
CREATE TABLE "accounts" (
    "id" BIGSERIAL NOT NULL,
    "name" TEXT NOT NULL,
    "email" TEXT,
    "created_at" TIMESTAMP(3) NOT NULL,
    "last_event_id" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "accounts_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_keys" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "label" TEXT,
    "prefix" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "read_only" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMP(3) NOT NULL,
    "last_used_at" TIMESTAMP(3),
    "expires_at" TIMESTAMP(3),

    CONSTRAINT "api_keys_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "categories" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "categories_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "pets" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "category_id" BIGINT NOT NULL,
    "status" "pet_status" NOT NULL DEFAULT 'available',
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "pets_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "inventory_items" (
    "pet_id" BIGINT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "inventory_items_pkey" PRIMARY KEY ("pet_id")
);

-- CreateTable
CREATE TABLE "orders" (
    "id" BIGSERIAL NOT NULL,
    "account_id" BIGINT NOT NULL,
    "pet_id" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL,
    "ship_date" TIMESTAMP(3),
    "complete" BOOLEAN NOT NULL DEFAULT false,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "orders_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "messages" (
    "position" BIGSERIAL NOT NULL,
    "id" TEXT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "message" TEXT NOT NULL,
    "status" "message_status" NOT NULL DEFAULT 'queued',
    "created_at" TIMESTAMP(3) NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 1,

    CONSTRAINT "messages_pkey" PRIMARY KEY ("position")
);

-- CreateTable
CREATE TABLE "events" (
    "account_id" BIGINT NOT NULL,
    "id" BIGINT NOT NULL,
    "type" TEXT NOT NULL,
    "timestamp" TIMESTAMP(3) NOT NULL,
    "data" TEXT NOT NULL,

    CONSTRAINT "events_pkey" PRIMARY KEY ("account_id","id")
);

-- CreateTable
CREATE TABLE "idempotency_records" (
    "account_id" BIGINT NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "record" TEXT,
    "etag" TEXT,
    "created_at" TIMESTAMP(3) NOT NULL,
    "expires_at" TIMESTAMP(3) NOT NULL,

    CONSTRAINT "idempotency_records_pkey" PRIMARY KEY ("account_id","key")
);

-- CreateIndex
CREATE UNIQUE INDEX "api_keys_hash_key" ON "api_keys"("hash");

-- CreateIndex
CREATE INDEX "api_keys_account_id_id_idx" ON "api_keys"("account_id", "id");

-- CreateIndex
CREATE INDEX "categories_account_id_id_idx" ON "categories"("account_id", "id");

-- CreateIndex
CREATE INDEX "pets_account_id_id_idx" ON "pets"("account_id", "id");

-- CreateIndex
CREATE INDEX "pets_account_id_status_id_idx" ON "pets"("account_id", "status", "id");

-- CreateIndex
CREATE INDEX "pets_category_id_account_id_id_idx" ON "pets"("category_id", "account_id", "id");

-- CreateIndex
CREATE INDEX "inventory_items_account_id_pet_id_idx" ON "inventory_items"("account_id", "pet_id");

-- CreateIndex
CREATE INDEX "orders_account_id_id_idx" ON "orders"("account_id", "id");

-- CreateIndex
CREATE INDEX "orders_account_id_complete_id_idx" ON "orders"("account_id", "complete", "id");

-- CreateIndex
CREATE INDEX "orders_pet_id_account_id_id_idx" ON "orders"("pet_id", "account_id", "id");

-- CreateIndex
CREATE UNIQUE INDEX "messages_id_key" ON "messages"("id");

-- CreateIndex
CREATE INDEX "messages_account_id_position_idx" ON "messages"("account_id", "position");

-- CreateIndex
CREATE INDEX "idempotency_records_expires_at_idx" ON "idempotency_records"("expires_at");

-- AddForeignKey
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "categories" ADD CONSTRAINT "categories_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "pets" ADD CONSTRAINT "pets_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "pets" ADD CONSTRAINT "pets_category_id_fkey" FOREIGN KEY ("category_id") REFERENCES "categories"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "inventory_items" ADD CONSTRAINT "inventory_items_pet_id_fkey" FOREIGN KEY ("pet_id") REFERENCES "pets"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "inventory_items" ADD CONSTRAINT "inventory_items_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "orders" ADD CONSTRAINT "orders_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "orders" ADD CONSTRAINT "orders_pet_id_fkey" FOREIGN KEY ("pet_id") REFERENCES "pets"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "messages" ADD CONSTRAINT "messages_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "events" ADD CONSTRAINT "events_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "idempotency_records" ADD CONSTRAINT "idempotency_records_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- What Prisma's models cannot say: the open orders of a pet.
CREATE INDEX "orders_open_idx" ON "orders"("pet_id") WHERE NOT "complete";

-- Ids are never above 2^53-1, so that every JSON client reads them exactly.
ALTER SEQUENCE "accounts_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "api_keys_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "categories_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "pets_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "orders_id_seq" MAXVALUE 9007199254740991;
ALTER SEQUENCE "messages_position_seq" MAXVALUE 9007199254740991;

ALTER TABLE "inventory_items" ADD CONSTRAINT "inventory_items_quantity_check" CHECK ("quantity" >= 0);
ALTER TABLE "orders" ADD CONSTRAINT "orders_quantity_check" CHECK ("quantity" BETWEEN 1 AND 2147483647);
