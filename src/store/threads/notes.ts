import type { Author } from "../../core/threads/author.ts";
import { changesRow, type Db, type Statement } from "../engine/client.ts";
import { requireRoom } from "../engine/guards.ts";
import { json, plain, table } from "../engine/columns.ts";

/** Maximum number of notes of a thread, and of the characters of one. A thread is read with all of its notes. */
export const MAX_NOTES = 200;
export const MAX_NOTE_CHARS = 5000;

/** A note of the team in a thread. It never leaves by mail. */
export interface Note {
  id: string;
  senderId: string;
  threadId: string;
  author: Author;
  text: string;
  /** Milliseconds. */
  createdAt: number;
}

const NOTES = table<Note>("thread_notes", {
  id: plain("id"),
  senderId: plain("sender_id"),
  threadId: plain("thread_id"),
  author: json("author"),
  text: plain("text"),
  createdAt: plain("created_at"),
});

/** Returns the statements that add a note to a thread of the project. They undo their write with the guard `too_many_records`. */
export function insertNote(note: Note): Statement[] {
  return [requireRoom("thread_notes WHERE thread_id = ?", note.threadId, MAX_NOTES), NOTES.insert(note)];
}

/** Returns the notes of a thread, oldest first. */
export function notesOf(db: Db, senderId: string, threadId: string): Promise<Note[]> {
  return NOTES.all(db, `WHERE thread_id = ? AND sender_id = ? ORDER BY id LIMIT ${MAX_NOTES}`, [
    threadId,
    senderId,
  ]);
}

/** Deletes a note. Returns false if the thread has none with that id. */
export function deleteNote(db: Db, senderId: string, threadId: string, id: string): Promise<boolean> {
  return changesRow(db, "DELETE FROM thread_notes WHERE sender_id = ? AND thread_id = ? AND id = ?", [
    senderId,
    threadId,
    id,
  ]);
}

/** Returns a note of the project; null if it has none with that id. */
export function getNote(db: Db, senderId: string, id: string): Promise<Note | null> {
  return NOTES.first(db, "WHERE sender_id = ? AND id = ?", [senderId, id]);
}
