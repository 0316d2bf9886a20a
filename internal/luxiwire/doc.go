// Package luxiwire is the protocol of the local control socket, without what the
// requests mean: frames on a stream, the request and response objects, the
// error pairs, and a client.
//
// A message is one JSON text in UTF-8 followed by the byte 0x03. A client
// sends {"method": NAME, "args": [...]}, the server answers each request, in
// order, with {"success": BOOL, "result": X}. A request that cannot be parsed
// is answered with a plain string as the result, and the connection is closed;
// a request that was understood and failed is answered with a pair
// [class, [arguments]], and the connection stays open. This is the protocol
// that Ganeti's command line, its remote API and its libraries speak.
//
// Invariants:
//   - A frame never holds the byte 0x03 itself: the JSON encoder escapes it.
//   - What is written is valid UTF-8, and what is read must be.
//   - The client never sends a request twice on its own, unless the caller
//     says that this is safe (Client.Resend).
package luxiwire
