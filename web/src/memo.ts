// A component that is drawn again only when its properties differ in a way that matters.

import { Component, type ComponentType, createElement, type JSX } from 'preact';

export function memo<P extends object>(
  Inner: (props: P) => JSX.Element,
  same: (before: P, after: P) => boolean,
): ComponentType<P> {
  return class Memo extends Component<P> {
    override shouldComponentUpdate(next: Readonly<P>): boolean {
      return !same(this.props as P, next as P);
    }
    override render() {
      return createElement(Inner, this.props as P);
    }
  };
}
