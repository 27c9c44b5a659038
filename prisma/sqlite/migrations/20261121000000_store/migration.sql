-- Written by Prisma from the models, then edited: ids are INTEGER PRIMARY KEY AUTOINCREMENT (a BIGINT
-- key is no rowid and assigns nothing, prisma/orm#20449), and the CHECKs hold what the models cannot say.

-- CreateTable
CREATE TABLE "accounts" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "name" TEXT NOT NULL,
    "email" TEXT,
    "created_at" DATETIME NOT NULL,
    "last_event_id" BIGINT NOT NULL DEFAULT 0
);

-- CreateTable
CREATE TABLE "api_keys" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "label" TEXT,
    "prefix" TEXT NOT NULL,
    "hash" TEXT NOT NULL,
    "read_only" BOOLEAN NOT NULL DEFAULT false,
    "created_at" DATETIME NOT NULL,
    "last_used_at" DATETIME,
    "expires_at" DATETIME,
    CONSTRAINT "api_keys_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "categories" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "description" TEXT,
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "categories_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "pets" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "name" TEXT NOT NULL,
    "category_id" BIGINT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'available' CHECK ("status" IN ('available', 'pending', 'sold')),
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "pets_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE,
    CONSTRAINT "pets_category_id_fkey" FOREIGN KEY ("category_id") REFERENCES "categories" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "inventory_items" (
    "pet_id" INTEGER PRIMARY KEY,
    "account_id" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL CHECK ("quantity" >= 0),
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "inventory_items_pet_id_fkey" FOREIGN KEY ("pet_id") REFERENCES "pets" ("id") ON DELETE RESTRICT ON UPDATE CASCADE,
    CONSTRAINT "inventory_items_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "orders" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("id" BETWEEN 1 AND 9007199254740991),
    "account_id" BIGINT NOT NULL,
    "pet_id" BIGINT NOT NULL,
    "quantity" BIGINT NOT NULL CHECK ("quantity" BETWEEN 1 AND 2147483647),
    "ship_date" DATETIME,
    "complete" BOOLEAN NOT NULL DEFAULT false,
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "orders_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE,
    CONSTRAINT "orders_pet_id_fkey" FOREIGN KEY ("pet_id") REFERENCES "pets" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "messages" (
    "position" INTEGER PRIMARY KEY AUTOINCREMENT CHECK ("position" BETWEEN 1 AND 9007199254740991),
    "id" TEXT NOT NULL,
    "account_id" BIGINT NOT NULL,
    "message" TEXT NOT NULL,
    "status" TEXT NOT NULL DEFAULT 'queued' CHECK ("status" IN ('queued', 'processing', 'delivered', 'failed')),
    "created_at" DATETIME NOT NULL,
    "version" BIGINT NOT NULL DEFAULT 1,
    CONSTRAINT "messages_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
);

-- CreateTable
CREATE TABLE "events" (
    "account_id" BIGINT NOT NULL,
    "id" BIGINT NOT NULL,
    "type" TEXT NOT NULL,
    "timestamp" DATETIME NOT NULL,
    "data" TEXT NOT NULL,

    PRIMARY KEY ("account_id", "id"),
    CONSTRAINT "events_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
) WITHOUT ROWID;

-- CreateTable
CREATE TABLE "idempotency_records" (
    "account_id" BIGINT NOT NULL,
    "key" TEXT NOT NULL,
    "fingerprint" TEXT NOT NULL,
    "record" TEXT,
    "etag" TEXT,
    "created_at" DATETIME NOT NULL,
    "expires_at" DATETIME NOT NULL,

    PRIMARY KEY ("account_id", "key"),
    CONSTRAINT "idempotency_records_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "accounts" ("id") ON DELETE RESTRICT ON UPDATE CASCADE
) WITHOUT ROWID;

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

-- What Prisma's models cannot say: the open orders of a pet.
CREATE INDEX "orders_open_idx" ON "orders"("pet_id") WHERE NOT "complete";
