import words from './en.session.json';
import { learn } from './text';

// The words of the page of a session.
learn(words);
