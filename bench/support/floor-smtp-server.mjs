/** nodemailer's smtp-server that reads each mail and stores nothing. Plain JavaScript: node runs it as well as Bun. */
const [library, port] = process.argv.slice(2);
const { SMTPServer } = await import(library);
let taken = 0;
const server = new SMTPServer({
  disabledCommands: ["AUTH", "STARTTLS"],
  // It would ask DNS for the name of each client.
  disableReverseLookup: true,
  logger: false,
  onData(stream, _session, done) {
    stream.on("end", () => {
      taken++;
      done();
    });
    stream.resume();
  },
});
server.listen(Number(port), "127.0.0.1", () => console.log("ready"));
process.on("SIGTERM", () => {
  console.log(`taken ${taken}`);
  process.exit(0);
});
