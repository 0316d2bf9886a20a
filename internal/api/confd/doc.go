// Package confd answers what Ganeti's programs ask the configuration daemon: small questions about the cluster, in datagrams that are signed with a key that all
// who may ask have (lib/confd, src/Ganeti/Confd). It only reads, and a controller that stands by answers, too, from what it has: the serial number in the
// answer tells how old that is.
//
// Invariants:
//   - Who does not have the key learns nothing, not even that somebody listens; nor does who sends again what was heard more than MaxSkew ago
//     (TestWhoGetsNoAnswer).
//   - An answer is signed with the salt of its question, so that it answers no other (TestAnswers).
//   - No datagram ends the server (TestServe, FuzzReply).
package confd
