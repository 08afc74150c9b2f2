import { clean } from '../../text/text';

const quoted = (word: string): string => (/^[\w.-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

/** A command, of words that a shell takes as they are. */
export const command = (...words: string[]): string => clean(words.map(quoted).join(' '));

/** The same at this server. */
export const here = (...words: string[]): string => `${command(...words)} --server ${location.origin}`;
