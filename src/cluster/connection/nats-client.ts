// The parts of the NATS client that are used. Imported when a connection is made; a bundle of its own.
export { jetstream } from "@nats-io/jetstream";
export { Kvm } from "@nats-io/kv";
export { connect, credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
