// A list that draws only what can be seen: 20,000 entries open as fast as twenty. Heights are measured as they appear.

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useReducer, useRef } from 'preact/hooks';

const MARGIN = 600;
const NEAR = 48;

interface Props {
  count: number;
  guess: number;
  name: string;
  role: 'feed' | 'list';
  follow?: boolean;
  target?: number;
  entry: (index: number) => ComponentChildren;
  tail?: ComponentChildren;
}

class Heights {
  private known: number[] = [];
  private tops: number[] = [0];
  constructor(private guess: number) {}

  set(index: number, height: number): number {
    const change = height - (this.known[index] ?? this.guess);
    if (change) {
      this.known[index] = height;
      this.tops.length = Math.min(this.tops.length, index + 1);
    }
    return change;
  }

  top(index: number): number {
    for (let at = this.tops.length; at <= index; at += 1)
      this.tops[at] = this.tops[at - 1]! + (this.known[at - 1] ?? this.guess);
    return this.tops[index]!;
  }

  /** The last entry that begins at or above a place. */
  at(place: number, count: number): number {
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.top(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, Math.max(0, count - 1));
  }
}

export function Scroll({ count, guess, name, role, follow, target, entry, tail }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Heights(guess)).current;
  const sticking = useRef(Boolean(follow));
  const lowest = useRef(0);
  const moving = useRef(false);
  const sought = useRef<number | undefined>(undefined);
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const sizes = useRef<ResizeObserver | undefined>(undefined);

  sizes.current ??= new ResizeObserver((changes) => {
    const scroller = box.current;
    if (!scroller) return;
    let moved = 0;
    for (const { target: row } of changes) {
      const index = Number((row as HTMLElement).dataset.index);
      if (Number.isNaN(index)) continue;
      const above = heights.top(index) < scroller.scrollTop;
      const change = heights.set(index, (row as HTMLElement).offsetHeight);
      if (above && !sticking.current) moved += change;
    }
    if (moved) scroller.scrollTop += moved;
    redraw(0);
  });

  useLayoutEffect(() => () => sizes.current?.disconnect(), []);
  useLayoutEffect(() => {
    const scroller = box.current;
    if (!scroller) return;
    if (target !== undefined && target >= 0 && target < count && sought.current !== target) {
      sought.current = target;
      sticking.current = false;
      scroller.scrollTop = heights.top(target) - 16;
      redraw(0);
    } else if (follow && sticking.current) scroller.scrollTop = scroller.scrollHeight;
  });

  const scroller = box.current;
  const height = scroller?.clientHeight ?? 800;
  const total = heights.top(count);
  const place = scroller
    ? sticking.current
      ? Math.max(0, total - height)
      : scroller.scrollTop
    : follow
      ? Math.max(0, total - height)
      : 0;
  const first = heights.at(place - MARGIN, count);
  const last = Math.min(count - 1, heights.at(place + height + MARGIN, count));
  const rows = [];
  for (let index = first; index <= last; index += 1)
    rows.push(
      <Row key={index} index={index} top={heights.top(index)} sizes={sizes.current}>
        {entry(index)}
      </Row>,
    );

  const scrolled = () => {
    const now = box.current!;
    const near = now.scrollHeight - now.scrollTop - now.clientHeight < NEAR;
    // Neither what grows below nor what vanishes there ends following; only a person who goes up does.
    if (near) {
      sticking.current = Boolean(follow);
      moving.current = false;
    } else if (moving.current && now.scrollTop < lowest.current - 1) sticking.current = false;
    lowest.current = now.scrollTop;
    redraw(0);
  };
  const jump = () => {
    sticking.current = true;
    redraw(0);
  };
  const moves = () => {
    moving.current = true;
  };
  return (
    <div
      class="scroll"
      ref={box}
      onScroll={scrolled}
      onWheel={moves}
      onTouchMove={moves}
      onKeyDown={moves}
      onFocusIn={moves}
      onPointerDown={(event) => event.target === box.current && moves()}
      tabIndex={0}
      role={role === 'feed' ? undefined : 'region'}
      aria-label={role === 'feed' ? undefined : name}
    >
      <div class="rows" role={role} aria-label={name} style={{ height: `${total}px` }}>
        {rows}
      </div>
      {tail}
      {follow && !sticking.current && (
        <button type="button" class="jump" onClick={jump}>
          Jump to latest ↓
        </button>
      )}
    </div>
  );
}

function Row({
  index,
  top,
  sizes,
  children,
}: {
  index: number;
  top: number;
  sizes: ResizeObserver;
  children: ComponentChildren;
}) {
  const row = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = row.current!;
    sizes.observe(element);
    return () => sizes.unobserve(element);
  }, [index]);
  return (
    <div class="row" ref={row} data-index={index} style={{ top: `${top}px` }}>
      {children}
    </div>
  );
}
