(* The oracle's front: one request a line on standard input, one answer a line on standard
   output. Fields are separated by single blanks.

     WHAT RULE OPERANDS [PARAMETER ...]

   A list of numbers is 2,3,4, and - is the empty list (the scalar shape). OPERANDS are
   shapes joined by ; and . stands for no operand at all.

     RULE            PARAMETERS
     exact           none
     numpy           none
     unidirectional  none
     pdpd            AXIS            a number, or none
     legacy          AXIS
     paddle          AXIS
     bidirectional   TARGET          a list
     to              TARGET
     axes            SHAPE AXES      two lists; AXES is a set, repetition does not count
     mapping         SHAPE MAPPING
     named           NAMES           lists of numbers joined by ; one for each operand

     WHAT            ANSWER
     shape           ok SHAPE
     frame           ok BASE GROW STRETCH PLACES    PLACES: a list for each operand joined by ;
                                                    (. for no operand), -1: the axis is dropped
     elements        ok SHAPE|OFFSETS|OFFSETS...    for each operand, the row-major offset of
                                                    the element that each result element shows
     sum             ok SHAPE|SUMS|SUMS...          for each operand, the values 0, 1, 2, ... of
                                                    the result's elements summed back to it

   Further:  interval LO HI LO HI   the join of two intervals, HI a number or * (endless):
                                    ok LO HI, or empty

   Answers instead of ok:  E1 (two sizes clash)   overhang (a dropped axis is not 1)
   refused (the ranks or the parameters)          ? TEXT (the line is not a request)
   The loop stops at the first clash or overhang, operand by operand and axis by axis.

   Only this file, the driver and the OCaml compiler are outside the proof. *)

exception Bad of string

let number s = try Z.of_string s with _ -> raise (Bad ("not a number: " ^ s))
let list s =
  if s = "-" then [||]
  else Array.of_list (List.map number (String.split_on_char ',' s))
let shape s =
  let l = list s in
  if Array.exists (fun d -> Z.sign d < 0) l then raise (Bad "a size below 0") else l
let lists item s =
  if s = "." then [||]
  else Array.of_list (List.map item (String.split_on_char ';' s))
let axis s = if s = "none" then None else Some (number s)

let show a =
  if a = [||] then "-"
  else String.concat "," (Array.to_list (Array.map Z.to_string a))
let show_all a =
  if a = [||] then "." else String.concat ";" (Array.to_list (Array.map show a))

let rule name params =
  match name, params with
  | "exact", [] -> Core.Exact
  | "numpy", [] -> Core.Numpy
  | "unidirectional", [] -> Core.Unidirectional
  | "pdpd", [a] -> Core.Pdpd (axis a)
  | "legacy", [a] -> Core.Legacy (axis a)
  | "paddle", [a] -> Core.Paddle (axis a)
  | "bidirectional", [t] -> Core.Bidirectional (shape t)
  | "to", [t] -> Core.To (shape t)
  | "axes", [t; s] -> Core.Axes (shape t, list s)
  | "mapping", [t; p] -> Core.Mapping (shape t, list p)
  | "named", [n] -> Core.Named (lists list n)
  | _ -> raise (Bad ("rule or parameters: " ^ name))

let each f z xs one =
  let row m = show (one (Core.offsets f.Core.place.(m) xs.(m) z) xs.(m)) in
  String.concat "|" (show z :: List.init (Array.length xs) row)

let bound lo hi =
  { Core.lo = number lo;
    hi = (if hi = "*" then Z.zero else number hi); endless = hi = "*" }

let answer line =
  match String.split_on_char ' ' line with
  | ["interval"; a; b; c; d] ->
    let r = Core.join_intervals (bound a b) (bound c d) in
    if r.Core.endless then "ok " ^ Z.to_string r.Core.lo ^ " *"
    else if Z.gt r.Core.lo r.Core.hi then "empty"
    else "ok " ^ Z.to_string r.Core.lo ^ " " ^ Z.to_string r.Core.hi
  | what :: name :: operands :: params ->
    let xs = lists shape operands in
    let r = rule name params in
    (match what with
     | "frame" ->
       let f = Core.frame_of r xs in
       Printf.sprintf "ok %s %b %b %s" (show f.Core.base) f.Core.grow f.Core.stretch
         (show_all f.Core.place)
     | "shape" -> let (_, z) = Core.shape_under r xs in "ok " ^ show z
     | "elements" ->
       let (f, z) = Core.shape_under r xs in
       "ok " ^ each f z xs (fun o _ -> o)
     | "sum" ->
       let (f, z) = Core.shape_under r xs in
       "ok " ^ each f z xs (fun o x -> Core.sum_back x o (Array.mapi (fun l _ -> Z.of_int l) o))
     | _ -> raise (Bad ("request: " ^ what)))
  | _ -> raise (Bad "too few fields")

let () =
  try
    while true do
      let line = input_line stdin in
      print_endline
        (try answer line with
         | Core.E1 -> "E1"
         | Core.Overhang -> "overhang"
         | Core.Refused -> "refused"
         | Bad why -> "? " ^ why)
    done
  with End_of_file -> ()
