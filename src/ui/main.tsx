import "./style.css";
import { render } from "preact";

function App() {
  return (
    <main>
      <h1>Postrider</h1>
      <p>
        The service runs. The reference of its API is at <a href="/docs">/docs</a>.
      </p>
    </main>
  );
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
