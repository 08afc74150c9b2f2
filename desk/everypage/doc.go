// Package everypage holds what is so on every page of the desk: that whoever cannot see it can use it, that
// what is withheld does not reach it, that no text becomes markup, that reading changes nothing, and that every
// word can be another language's. Its tests take minutes, and so stand apart from those of what one does there;
// it has nothing but these.
package everypage
