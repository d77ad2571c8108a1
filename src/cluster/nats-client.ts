// What is used of the NATS client. Imported when a connection is made, and a file of its own in the built program.
export { jetstream } from "@nats-io/jetstream";
export { Kvm } from "@nats-io/kv";
export { connect, credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
