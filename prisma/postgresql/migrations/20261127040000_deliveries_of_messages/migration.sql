-- A restore looks up the deliveries of the messages that it brings back. Few deliveries have a message.
CREATE INDEX "deliveries_message_idx" ON "deliveries"("message_position") WHERE "message_position" IS NOT NULL;
