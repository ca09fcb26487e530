/** A name next to its address. A long name is cut before the address is, because a list that hides addresses helps forgers. */
export function Person({ name, email }: { name?: string | null | undefined; email: string }) {
  if (name == null || name === "" || name === email) return <bdi class="cut">{email}</bdi>;
  return (
    <span class="person">
      <bdi class="cut">{name}</bdi> <span class="cut quiet">{email}</span>
    </span>
  );
}
