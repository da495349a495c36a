// Streams of words and output while they are made: pieces are placed by where they stand, so none is lost or doubled.

import type { StreamPiece } from './events';

interface Stream {
  make: number;
  length: number;
  text: string;
  over: boolean;
}

const KEPT = 1 << 18;

export class Live {
  private streams = new Map<string, Stream>();

  add(piece: StreamPiece): void {
    const key = `${piece.kind} ${piece.speaker}`;
    let stream = this.streams.get(key);
    if (!stream || piece.make > stream.make || (piece.at > stream.length && !stream.over)) {
      stream = { make: piece.make, length: piece.at, text: piece.at ? '…\n' : '', over: false };
      this.streams.set(key, stream);
    }
    if (piece.make < stream.make || stream.over) return;
    const fresh = piece.text.slice(stream.length - piece.at);
    stream.length += fresh.length;
    stream.text = (stream.text + fresh).slice(-KEPT);
  }

  of(kind: StreamPiece['kind'], speaker: string): string {
    return this.streams.get(`${kind} ${speaker}`)?.text ?? '';
  }

  /** What has been recorded is no longer live; a late piece of it changes nothing. */
  end(kind?: StreamPiece['kind'], speaker?: string): void {
    for (const [key, stream] of this.streams) {
      const ours = (!kind || key.startsWith(`${kind} `)) && (!speaker || key.endsWith(` ${speaker}`));
      if (ours) Object.assign(stream, { text: '', over: true });
    }
  }

  /** A turn begins: nobody else is speaking, even if a late piece of an older answer came after its record. */
  endOthers(speaker: string): void {
    for (const [key, stream] of this.streams)
      if (!key.endsWith(` ${speaker}`)) Object.assign(stream, { text: '', over: true });
  }
}
