import { everyFileOn } from "./every-file.ts";

everyFileOn("replica");
