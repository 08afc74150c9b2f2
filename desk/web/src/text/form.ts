import words from './en.form.json';
import { learn } from './text';

// The words of forms.
learn(words);
