// The parts of the NATS client that are used. Imported only when a connection is made, and bundled as a file of its
// own.
export { jetstream } from "@nats-io/jetstream";
export { Kvm } from "@nats-io/kv";
export { connect, credsAuthenticator, nkeyAuthenticator } from "@nats-io/transport-node";
