/** An error that an operator can fix, such as a port in use: the message names the cause and the remedy. */
export class OperationalError extends Error {}
